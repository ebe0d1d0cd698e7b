// The schedule explorer replaces this file: with EXPLORED every atomic operation yields first, and tables have smaller lines.
export const EXPLORED: bool = false
export const ENTRIES_PER_LINE: i32 = 4
