/** Places in bounded number, of which each host may have half. */
export class Places {
  readonly #max: number
  readonly #byHost = new Map<string, number>()
  #taken = 0

  constructor(max: number) {
    this.#max = max
  }

  get taken(): number {
    return this.#taken
  }

  /** False where there is no room. */
  take(host: string): boolean {
    const ofHost = this.#byHost.get(host) ?? 0
    if (this.#taken >= this.#max || ofHost >= Math.ceil(this.#max / 2)) return false
    this.#taken++
    this.#byHost.set(host, ofHost + 1)
    return true
  }

  giveBack(host: string): void {
    this.#taken--
    const left = (this.#byHost.get(host) ?? 1) - 1
    if (left === 0) this.#byHost.delete(host)
    else this.#byHost.set(host, left)
  }
}
