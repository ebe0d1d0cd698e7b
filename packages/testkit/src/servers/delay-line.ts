/** Passes chunks on in their order, each no sooner than its delay says. */
export class DelayLine {
  private readonly write: (chunk: Buffer) => void
  private readonly held: { readonly chunk: Buffer; readonly dueMs: number }[] = []

  constructor(write: (chunk: Buffer) => void) {
    this.write = write
  }

  pass(chunk: Buffer, delayMs: number): void {
    const last = this.held.at(-1)
    if (last === undefined && delayMs <= 0) this.write(chunk)
    else this.held.push({ chunk, dueMs: Math.max(last?.dueMs ?? 0, performance.now() + delayMs) })
    if (last === undefined) this.arm()
  }

  private arm(): void {
    const first = this.held[0]
    if (first !== undefined) setTimeout(() => this.release(), Math.max(0, first.dueMs - performance.now()))
  }

  private release(): void {
    for (let first = this.held[0]; first !== undefined && first.dueMs <= performance.now(); first = this.held[0]) {
      this.held.shift()
      this.write(first.chunk)
    }
    this.arm()
  }
}
