//! Objects that seldom change and that nearly every command reads, kept on the connection that writes as they were read: found
//! and parsed anew they cost a fortieth of a command.
//!
//! What is kept is what was committed when the running transaction began: a table that this transaction has written is not
//! kept until the next one begins, and all is forgotten when another process has committed. So neither a rollback nor a
//! savepoint has to be told.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use domain::Scope;

/// Beyond this, all are read again.
const MOST: usize = 1024;

/// By table, scope and id.
type Key = (&'static str, Scope, String);

#[derive(Default)]
pub(crate) struct Settled {
    objects: HashMap<Key, Arc<dyn Any + Send + Sync>>,
    /// Tables that something is kept of.
    tables: Vec<&'static str>,
    /// Those among them that the running transaction has written.
    written: Vec<&'static str>,
}

impl Settled {
    /// A transaction begins, and whatever became of the one before has become of it.
    pub(crate) fn begin(&mut self) {
        self.written.clear();
    }

    /// Somebody else may have written anything.
    pub(crate) fn forget(&mut self) {
        self.objects.clear();
    }

    /// A statement is about to change what it names.
    pub(crate) fn changed(&mut self, sql: &str) {
        for table in &self.tables {
            if sql.contains(table) && !self.written.contains(table) {
                self.written.push(table);
                self.objects.retain(|key, _| key.0 != *table);
            }
        }
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self, key: &Key) -> Option<Arc<T>> {
        Arc::clone(self.objects.get(key)?).downcast().ok()
    }

    pub(crate) fn keep<T: Send + Sync + 'static>(&mut self, key: Key, object: &Arc<T>) {
        let table = key.0;
        if !self.tables.contains(&table) {
            // Whether it was written before its name was known, nobody has looked.
            self.tables.push(table);
            self.written.push(table);
        }
        if self.written.contains(&table) {
            return;
        }
        if self.objects.len() >= MOST {
            self.objects.clear();
        }
        let object: Arc<dyn Any + Send + Sync> = Arc::<T>::clone(object);
        self.objects.insert(key, object);
    }
}
