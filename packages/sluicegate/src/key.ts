/** Who is limited: a string of 1 to 1,024 UTF-16 units. With `allOf` also an array of them, one for each of its policies. */
export type Key = string | readonly string[]
