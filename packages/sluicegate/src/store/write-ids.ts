/** Which write it is: of which writer, and its count; 32 bits each. */
export interface WriteId {
  readonly writer: number
  readonly count: number
}

/** Ids of writes. Of one writer the next is made when the outcome of the last is known; without `isOne` each is of a writer of its own. */
export class WriteIds {
  private readonly isOne: boolean
  private writer = random()
  private last = 0

  constructor(isOne: boolean) {
    this.isOne = isOne
  }

  next(): WriteId {
    if (!this.isOne) this.writer = random()
    this.last = (this.last + 1) >>> 0
    return { writer: this.writer, count: this.last }
  }
}

function random(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] as number
}
