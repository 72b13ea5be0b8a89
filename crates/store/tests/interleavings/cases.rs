//! What is done with the queues.

/// The cases, for the queues of the module in which this stands.
macro_rules! cases {
    () => {
        struct Numbered(usize);

        impl crate::job::Job for Numbered {
            fn number(&self) -> usize {
                self.0
            }
        }

        /// Some push, some take; in the end the queue is closed.
        pub(crate) fn reads(pushing: usize, each: usize, taking: usize) {
            let (reads, waiting) = reads::Reads::new();
            let (reads, taken) = (Arc::new(reads), Arc::new(Mutex::new(Vec::new())));
            let take = |_| {
                let (waiting, taken) = (Arc::clone(&waiting), Arc::clone(&taken));
                thread::spawn(move || {
                    while let Some(job) = waiting.next() {
                        taken.lock().unwrap().push(job.number());
                    }
                })
            };
            let push = |pusher| {
                let reads = Arc::clone(&reads);
                thread::spawn(move || {
                    let jobs = (0..each).map(|number| pusher * each + number);
                    jobs.filter(|&number| match reads.push(Box::new(Numbered(number))) {
                        Ok(()) => true,
                        Err(given_back) => {
                            assert_eq!(given_back.number(), number, "what is refused is given back");
                            false
                        }
                    })
                    .collect::<Vec<_>>()
                })
            };
            let takers: Vec<_> = (0..taking).map(take).collect();
            let pushers: Vec<_> = (0..pushing).map(push).collect();
            let mut accepted: Vec<_> = pushers.into_iter().flat_map(|pusher| pusher.join().unwrap()).collect();
            drop(reads);
            takers.into_iter().for_each(|taker| taker.join().unwrap());
            let mut taken = std::mem::take(&mut *taken.lock().unwrap());
            (accepted.sort_unstable(), taken.sort_unstable());
            assert_eq!(accepted, taken, "each job is taken once");
        }

        /// Some push, and call for threads that take until nothing waits.
        pub(crate) fn additions(pushing: usize, each: usize, taking: usize) {
            let additions = Arc::new(additions::Additions::default());
            let taken = Arc::new(Mutex::new(Vec::new()));
            let (call, calls) = channel();
            let calls = Arc::new(Mutex::new(calls));
            let take = |_| {
                let (additions, taken, calls) = (Arc::clone(&additions), Arc::clone(&taken), Arc::clone(&calls));
                thread::spawn(move || {
                    loop {
                        let called = calls.lock().unwrap().recv();
                        if called.is_err() {
                            return;
                        }
                        loop {
                            let jobs = additions.next();
                            if jobs.is_empty() {
                                break;
                            }
                            taken.lock().unwrap().extend(jobs.iter().map(|job| job.number()));
                        }
                    }
                })
            };
            let push = |pusher| {
                let (additions, call) = (Arc::clone(&additions), call.clone());
                thread::spawn(move || {
                    let jobs = (0..each).map(|number| pusher * each + number);
                    let push =
                        |number| additions.push(Box::new(Numbered(number)), (), || call.send(()).map_err(|_| ()));
                    jobs.filter(|&number| push(number).is_ok()).collect::<Vec<_>>()
                })
            };
            let takers: Vec<_> = (0..taking).map(take).collect();
            let pushers: Vec<_> = (0..pushing).map(push).collect();
            let mut accepted: Vec<_> = pushers.into_iter().flat_map(|pusher| pusher.join().unwrap()).collect();
            drop(call);
            takers.into_iter().for_each(|taker| taker.join().unwrap());
            let mut taken = std::mem::take(&mut *taken.lock().unwrap());
            (accepted.sort_unstable(), taken.sort_unstable());
            assert_eq!(accepted, taken, "each job is taken once");
        }

        /// Some push, and call for a thread that tries one, in vain the first time. In the end nobody can be called any more.
        pub(crate) fn blocked(pushing: usize, each: usize, taking: usize) {
            let blocked = Arc::new(blocked::Blocked::new());
            let ended = Arc::new(Mutex::new(Vec::new()));
            let (call, calls) = channel();
            let (call, calls) = (Arc::new(Mutex::new(Some(call))), Arc::new(Mutex::new(calls)));
            let called = Arc::clone(&call);
            let ask = move || called.lock().unwrap().as_ref().is_some_and(|call| call.send(()).is_ok());
            let take = |_| {
                let (blocked, ended, calls) = (Arc::clone(&blocked), Arc::clone(&ended), Arc::clone(&calls));
                let ask = ask.clone();
                thread::spawn(move || {
                    loop {
                        let called = calls.lock().unwrap().recv();
                        if called.is_err() {
                            return;
                        }
                        // Who ends has left the line before, as who waits long.
                        let left = match blocked.next() {
                            Some((number, true)) => Some(number),
                            Some((number, false)) => {
                                blocked.put_back((number, true));
                                None
                            }
                            None => None,
                        };
                        let refused = blocked.go_on(&ask);
                        ended.lock().unwrap().extend(refused.into_iter().map(|(number, _)| number).chain(left));
                    }
                })
            };
            let push = |pusher| {
                let (blocked, ask) = (Arc::clone(&blocked), ask.clone());
                thread::spawn(move || {
                    let jobs = (0..each).map(|number| pusher * each + number);
                    jobs.filter(|&number| blocked.push((number, false), &ask).is_ok()).collect::<Vec<_>>()
                })
            };
            let takers: Vec<_> = (0..taking).map(take).collect();
            let pushers: Vec<_> = (0..pushing).map(push).collect();
            let mut accepted: Vec<_> = pushers.into_iter().flat_map(|pusher| pusher.join().unwrap()).collect();
            call.lock().unwrap().take();
            takers.into_iter().for_each(|taker| taker.join().unwrap());
            let mut ended = std::mem::take(&mut *ended.lock().unwrap());
            (accepted.sort_unstable(), ended.sort_unstable());
            assert_eq!(accepted, ended, "each is tried until it ends, or given back");
        }
    };
}
