import { ID_BYTES } from './stored-value.js'

/** Ids of writes. Of one writer the next is made when the outcome of the last is known; without `isOne` each is of a writer of its own. */
export class WriteIds {
  private readonly isOne: boolean
  private writer = random()
  private last = 0

  constructor(isOne: boolean) {
    this.isOne = isOne
  }

  next(): Uint8Array {
    if (!this.isOne) this.writer = random()
    this.last = (this.last + 1) >>> 0
    const bytes = new Uint8Array(ID_BYTES)
    const view = new DataView(bytes.buffer)
    view.setUint32(0, this.writer, true)
    view.setUint32(4, this.last, true)
    return bytes
  }
}

function random(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] as number
}
