// Replaced as a whole when the core is compiled for exploration: every atomic operation then yields first.
export const EXPLORED: bool = false
export const ENTRIES_PER_LINE: i32 = 4
