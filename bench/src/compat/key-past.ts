/** What is known of a key in the window at hand, to leave out what the two do differently. */
export interface KeyPast {
  /** The points that theirs counts, and by which ours is at most beyond its own. */
  readonly consumed: number
  /** Where its window begins with ours: else their resets are apart. */
  readonly isAligned: boolean
  /** When its block ends, where it has one. */
  readonly blockEndsMs: number | undefined
  /** Theirs has counted points that it denied. */
  readonly hasDenied: boolean
  /** It has denied some of which there was a part: ours still has that. */
  readonly isApart: boolean
}

/** What is left of it when the window has ended: a block that lasts longer. */
export function pastInNextWindow(past: KeyPast, nowMs: number): KeyPast | undefined {
  return isBlocked(past, nowMs) ? { ...past, isAligned: false } : undefined
}

export function isBlocked(past: KeyPast | undefined, nowMs: number): boolean {
  return past?.blockEndsMs !== undefined && past.blockEndsMs > nowMs
}
