//! State tables as text: rows are states, columns are actions, as the contract prints them. Tests only.

/// What every action does in every state, in columns of equal width.
pub(crate) fn table<S, A>(states: &[(&str, S)], actions: &[(&str, A)], cell: impl Fn(&S, &A) -> String) -> String {
    assert!(!states.is_empty(), "a table has rows");
    assert!(!actions.is_empty(), "a table has columns");
    let mut rows = vec![actions.iter().fold(vec![String::new()], |mut row, (name, _)| {
        row.push((*name).to_owned());
        row
    })];
    for (name, state) in states {
        let mut row = vec![(*name).to_owned()];
        row.extend(actions.iter().map(|(_, action)| cell(state, action)));
        rows.push(row);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..=actions.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(text, width)| format!("{text:width$}"));
        cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
