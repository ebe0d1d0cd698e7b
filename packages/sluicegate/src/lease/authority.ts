/** What an authority hands out. Durations in microseconds from its answer on, by its clock. */
export interface Grant {
  /** Tokens that may be spent from now on. */
  readonly ready: number
  /** Tokens that may be spent later. */
  readonly later: number
  /** When the token of that number may be spent, 0 for the ready ones; the numbers go over both. Never less than for the one before. */
  beginUs(token: number): number
  /** When it is void. Never earlier than for the one before. */
  endUs(token: number): number
  /**
   * Whether what was spent flows back by itself, token by token, as of a rate: then the answer says of any number when it would pass. Where
   * it does not, nobody knows that but the authority, and others may give back what they hold.
   */
  readonly flowsBack: boolean
  /** By which {@link Authority.giveBack} knows it; undefined when nothing of it can be given back. */
  readonly id?: number | undefined
  /** Until the fewest that are of use would pass once more, if nobody else takes. */
  readonly untilFreeUs: number
  /** The same for that many tokens, or for fewer where only the authority knows more; undefined where nothing is known. */
  untilFreeFor(tokens: number): number | undefined
  /** Until asking again makes sense, when it was less than was wanted; at random, so that those who ask do not come together. */
  readonly askAfterUs: number
  /** For how long nothing passes, whatever is there. */
  readonly blockedUs: number
  /** Whole tokens left at the authority, and until the key is as good as new there. */
  readonly remaining: number
  readonly untilNewUs: number
}

/**
 * Who hands out tokens ahead of need: the one place that knows what all processes together have. A lease is one atomic step there, on
 * its clock; what it hands out is charged at once, and who does not spend it in time has lost it. Rejects when the authority cannot be
 * reached; then at most what was wanted was charged, and nobody has it.
 */
export interface Authority {
  /**
   * At most `want` tokens, of which some may conform only within `horizonUs`; none when there are fewer than `least`, so that who asks for
   * a larger cost takes nothing from the others before there is enough for it.
   */
  lease(key: string, want: number, horizonUs: number, least: number): Promise<Grant>
  /**
   * Takes back tokens of a grant that nobody has spent and nobody will: so that others may have them, where that is still safe, else they
   * stay charged. A call that is lost changes nothing.
   */
  giveBack?(key: string, tokens: number, id: number): Promise<unknown>
}
