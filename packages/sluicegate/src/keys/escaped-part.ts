/** What stands between the parts of a composed key. */
export const JOINT = '|'
const SPECIAL = /[|\\]/g

/**
 * A key, or a part of one, with a backslash before each `|` and each backslash: a `|` without one is then always a joint of {@link compose},
 * and no value makes a key of one reader look like one of several.
 */
export function escapedPart(part: string): string {
  return part.includes(JOINT) || part.includes('\\') ? part.replace(SPECIAL, '\\$&') : part
}
