/** An item's place in a {@link Chain}. */
export interface Place<Item> {
  readonly item: Item
  before: Place<Item> | undefined
  after: Place<Item> | undefined
}

/** A queue that items may also enter and leave in the middle, each in one step: leaving by the thousand stays cheap. */
export class Chain<Item> {
  first: Place<Item> | undefined
  last: Place<Item> | undefined
  size = 0

  add(item: Item): Place<Item> {
    return this.insert(item, this.last)
  }

  /** Puts `item` right after `before`, undefined for the front. */
  insert(item: Item, before: Place<Item> | undefined): Place<Item> {
    this.size++
    const after = before === undefined ? this.first : before.after
    const place: Place<Item> = { item, before, after }
    if (before === undefined) this.first = place
    else before.after = place
    if (after === undefined) this.last = place
    else after.before = place
    return place
  }

  /** Takes a place out, once. */
  remove({ before, after }: Place<Item>): void {
    this.size--
    if (before === undefined) this.first = after
    else before.after = after
    if (after === undefined) this.last = before
    else after.before = before
  }

  /** The item at hand may be removed meanwhile. */
  *[Symbol.iterator](): Iterator<Item> {
    for (let place = this.first; place !== undefined; place = place.after) yield place.item
  }
}
