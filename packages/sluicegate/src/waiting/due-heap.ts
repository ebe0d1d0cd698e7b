/** Something that falls due. Of those due at the same microsecond the lower `order` is first. */
export interface Due {
  dueUs: number
  order: number
  /** Where it is in the heap, -1 when it is not. Only the heap writes it. */
  place: number
}

/** A binary heap, soonest first, from which anything may be removed: each change costs log n steps. */
export class DueHeap<Item extends Due> {
  private readonly items: Item[] = []

  get first(): Item | undefined {
    return this.items[0]
  }

  add(item: Item): void {
    this.items.push(item)
    this.rise(item, this.items.length - 1)
  }

  remove(item: Item): void {
    const { place } = item
    if (place < 0) return
    item.place = -1
    const last = this.items.pop() as Item
    if (last === item) return
    this.rise(last, place)
    this.sink(last, last.place)
  }

  private rise(item: Item, from: number): void {
    let place = from
    while (place > 0) {
      const parent = (place - 1) >> 1
      const above = this.items[parent] as Item
      if (!isSooner(item, above)) break
      this.put(above, place)
      place = parent
    }
    this.put(item, place)
  }

  private sink(item: Item, from: number): void {
    let place = from
    for (;;) {
      const left = this.items[2 * place + 1]
      const right = this.items[2 * place + 2]
      const child = right !== undefined && isSooner(right, left as Item) ? right : left
      if (child === undefined || !isSooner(child, item)) break
      const next = child.place
      this.put(child, place)
      place = next
    }
    this.put(item, place)
  }

  private put(item: Item, place: number): void {
    this.items[place] = item
    item.place = place
  }
}

function isSooner(a: Due, b: Due): boolean {
  return a.dueUs < b.dueUs || (a.dueUs === b.dueUs && a.order < b.order)
}
