/** Questions of those who do not stand in line, on their way to the store, by key. */
export class PendingRequests {
  private readonly byName = new Map<string, { count: number; largest: number }>()

  has(name: string): boolean {
    return this.byName.has(name)
  }

  /**
   * Whether a question about so many tokens cannot overtake those on their way: the store answers in order, so where fewer tokens were denied
   * as many or more are, too.
   */
  mayFollow(name: string, cost: number): boolean {
    const { largest = 0 } = this.byName.get(name) ?? {}
    return cost >= largest
  }

  begin(name: string, cost: number): void {
    const underway = this.byName.get(name)
    if (underway === undefined) this.byName.set(name, { count: 1, largest: cost })
    else {
      underway.count++
      underway.largest = Math.max(underway.largest, cost)
    }
  }

  end(name: string): void {
    const underway = this.byName.get(name)
    if (underway !== undefined && --underway.count === 0) this.byName.delete(name)
  }
}
