/** Slots a ttl, at least: the ends of holds are rounded up to one, so what a key keeps does not grow with the number of its holds. */
const SLOTS = 8

/** The width of the slots of holds with this time to live: a power of two, so that those of several times share their ends. */
export function slotUs(ttlUs: number): number {
  return 2 ** Math.floor(Math.log2(Math.max(SLOTS, ttlUs) / SLOTS))
}

/** The end of a hold that was renewed at `nowUs`. */
export function endOf(nowUs: number, ttlUs: number, widthUs: number): number {
  return Math.ceil((nowUs + ttlUs) / widthUs) * widthUs
}
