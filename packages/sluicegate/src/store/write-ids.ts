/** Which write it is: of which writer, and its count; 32 bits each. */
export interface WriteId {
  readonly writer: number
  readonly count: number
}

/** Ids of writes of one writer. Of each key the next is made when the outcome of the last is known. */
export class WriteIds {
  private readonly writer = crypto.getRandomValues(new Uint32Array(1))[0] as number
  private last = 0

  next(): WriteId {
    this.last = (this.last + 1) >>> 0
    return { writer: this.writer, count: this.last }
  }
}
