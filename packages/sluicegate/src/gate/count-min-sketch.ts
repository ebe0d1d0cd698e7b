/** Panes of a counter. All but the newest cover the window together. */
const PANES = 8
/** The highest count of a pane, at which it stays. */
const MAX_COUNT = 0xffff_ffff
/** Keys that no record has, by which the error is measured. */
const PROBES = 256
/** The error is measured again when the sum of all costs has grown by this factor... */
const GROWTH_BETWEEN = 17 / 16
/** ...which is looked at every `width / 32` records: before that it has grown by less than a tenth of a token. */
const WIDTH_PER_RECORD = 32

/** Form of a {@link CountMinSketch}. */
export interface SketchShape {
  /** A power of two. */
  readonly width: number
  readonly depth: number
  readonly windowMs: number
}

/**
 * Counts of keys in a sliding window, in fixed memory. A key has one counter in each row, and shares it with other keys; a counter has eight
 * panes, each for a seventh of the window. A count is the sum over the panes of the least pane of the key's counters. It is never below the
 * true count of the window, and covers at most a seventh of the window more.
 *
 * Keys come as 64 bits of a keyed hash: which keys share a counter cannot be known without the secret.
 *
 * Sources: G. Cormode, S. Muthukrishnan, "An improved data stream summary: the count-min sketch and its applications", 2005; the update is
 * conservative (C. Estan, G. Varghese, "New directions in traffic measurement and accounting", 2002), pane by pane: an older pane takes
 * nothing back from the newer ones when it leaves.
 */
export class CountMinSketch {
  /** `e / width`: the error of a count is at most this share of {@link CountMinSketch.total}... */
  readonly epsilon: number
  /** ...except with this probability, `e ** -depth`. */
  readonly delta: number
  readonly #depth: number
  readonly #paneMs: number
  /** One row after the other; the panes of a counter are neighbours. */
  readonly #cells: Uint32Array
  /** Sums of the costs in each pane. */
  readonly #totals = new Float64Array(PANES)
  /** Two odd factors for each row. */
  readonly #factors: Int32Array
  readonly #shift: number
  readonly #rowCells: number
  /** Where the counters of the current key begin. */
  readonly #at: Int32Array
  readonly #probes: Int32Array
  #newest = Number.NEGATIVE_INFINITY
  readonly #recordsBetween: number
  #recordsLeft: number
  #measuredTotal = 0
  #margin = 0

  constructor({ width, depth, windowMs }: SketchShape) {
    this.epsilon = Math.E / width
    this.delta = Math.E ** -depth
    this.#depth = depth
    this.#paneMs = windowMs / (PANES - 1)
    this.#cells = new Uint32Array(width * depth * PANES)
    this.#rowCells = width * PANES
    this.#shift = 32 - Math.log2(width)
    this.#factors = crypto.getRandomValues(new Int32Array(2 * depth)).map((factor) => factor | 1)
    this.#at = new Int32Array(depth)
    this.#probes = crypto.getRandomValues(new Int32Array(2 * PROBES))
    this.#recordsBetween = width / WIDTH_PER_RECORD
    this.#recordsLeft = this.#recordsBetween
  }

  get memoryBytes(): number {
    return this.#cells.byteLength
  }

  /** Changes when panes have left the window: then all counts may have fallen. */
  get newestPane(): number {
    return this.#newest
  }

  /** The sum of all costs in the window. */
  get total(): number {
    let total = 0
    for (let pane = 0; pane < PANES; pane++) total += this.#totals[pane] as number
    return total
  }

  /**
   * The error of counts as it is now: the highest count of keys that were never added, at most `epsilon * total`. A key without records would
   * exceed it with a probability of at most 1 in 257, whatever the traffic is: its place is as random as theirs.
   */
  get margin(): number {
    return this.#margin
  }

  /** Adds `cost` at a time, and returns the new count of the key; -1 for a time before the window, which adds nothing. */
  add(low: number, high: number, cost: number, timeMs: number): number {
    const pane = Math.floor(timeMs / this.#paneMs)
    if (pane > this.#newest) this.#moveTo(pane)
    else if (pane <= this.#newest - PANES) return -1
    const slot = slotOf(pane)
    this.#totals[slot] = (this.#totals[slot] as number) + cost
    this.#locate(low, high)
    const cells = this.#cells
    const at = this.#at
    let least = MAX_COUNT
    for (let row = 0; row < this.#depth; row++) least = Math.min(least, cells[(at[row] as number) + slot] as number)
    const raised = Math.min(MAX_COUNT, least + cost)
    for (let row = 0; row < this.#depth; row++) {
      const cell = (at[row] as number) + slot
      if ((cells[cell] as number) < raised) cells[cell] = raised
    }
    const sum = this.#sum()
    if (--this.#recordsLeft <= 0) {
      this.#recordsLeft = this.#recordsBetween
      if (this.total > this.#measuredTotal * GROWTH_BETWEEN) this.#measure()
    }
    return sum
  }

  /** The count of a key in the window that ends at the newest time. */
  count(low: number, high: number): number {
    this.#locate(low, high)
    return this.#sum()
  }

  #locate(low: number, high: number): void {
    const factors = this.#factors
    for (let row = 0; row < this.#depth; row++) {
      // Multiply-shift over two words: the upper bits of a sum of products with odd factors.
      const mixed = (Math.imul(low, factors[2 * row] as number) + Math.imul(high, factors[2 * row + 1] as number)) | 0
      this.#at[row] = row * this.#rowCells + (mixed >>> this.#shift) * PANES
    }
  }

  /** The sum over the panes of the least of each; eight variables, because an array of them would cost as much as all the rest. */
  #sum(): number {
    const cells = this.#cells
    let a = MAX_COUNT
    let b = MAX_COUNT
    let c = MAX_COUNT
    let d = MAX_COUNT
    let e = MAX_COUNT
    let f = MAX_COUNT
    let g = MAX_COUNT
    let h = MAX_COUNT
    for (let row = 0; row < this.#depth; row++) {
      const at = this.#at[row] as number
      a = Math.min(a, cells[at] as number)
      b = Math.min(b, cells[at + 1] as number)
      c = Math.min(c, cells[at + 2] as number)
      d = Math.min(d, cells[at + 3] as number)
      e = Math.min(e, cells[at + 4] as number)
      f = Math.min(f, cells[at + 5] as number)
      g = Math.min(g, cells[at + 6] as number)
      h = Math.min(h, cells[at + 7] as number)
    }
    return a + b + c + d + e + f + g + h
  }

  #moveTo(pane: number): void {
    if (pane - this.#newest >= PANES) {
      if (this.#newest !== Number.NEGATIVE_INFINITY) this.#cells.fill(0)
      this.#totals.fill(0)
    } else {
      for (let left = this.#newest + 1; left <= pane; left++) {
        const slot = slotOf(left)
        for (let cell = slot; cell < this.#cells.length; cell += PANES) this.#cells[cell] = 0
        this.#totals[slot] = 0
      }
    }
    this.#newest = pane
    this.#measure()
  }

  #measure(): void {
    const { total } = this
    const most = Math.floor(this.epsilon * total)
    let highest = 0
    for (let probe = 0; probe < 2 * PROBES && highest < most; probe += 2) {
      const count = this.count(this.#probes[probe] as number, this.#probes[probe + 1] as number)
      if (count > highest) highest = count
    }
    this.#margin = Math.min(most, highest)
    this.#measuredTotal = total
  }
}

function slotOf(pane: number): number {
  return ((pane % PANES) + PANES) % PANES
}
