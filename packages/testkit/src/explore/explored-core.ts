/** An instance of the core compiled for exploration. */
export interface ExploredCore {
  create(section: number, lines: number, denyWhenFull: boolean): void
  addParts(firstLines: number, secondLines: number): void
  admitOverflow(counters: number, count: number, limit: number, windowUs: number): void
  attach(section: number): void
  setAlone(isAlone: boolean): void
  look(): void
  policyRecord(): number
  propose(): number
  /** 0: extensions are elsewhere by now than those that were seen; the numbers have to be counted out again. */
  update(block: number, nowUs: number, seenEpoch: number): number
  take(low: number, high: number, nowUs: number, tokens: number): number
  takeAny(low: number, high: number, nowUs: number, tokens: number): number
  peek(low: number, high: number, nowUs: number, tokens: number): number
  refund(low: number, high: number, nowUs: number, tokens: number): number
  penalize(low: number, high: number, nowUs: number, tokens: number): number
  reset(low: number, high: number, nowUs: number): number
  ban(low: number, high: number, nowUs: number, us: number): number
  reserve(low: number, high: number, nowUs: number, tokens: number, mostUs: number): number
  cancel(low: number, high: number, nowUs: number, tokens: number, bound: number, generation: number): number
  untilFree(tokens: number): number
  untilNew(): number
  waitUs(): number
  openDescriptor(): number
  stage(descriptor: number, low: number, high: number, nowUs: number, tokens: number): number
  commit(descriptor: number): number
  closeDescriptor(descriptor: number): void
  prepareHold(low: number, high: number, nowUs: number, endUs: number): number
  stageHold(descriptor: number, low: number, high: number, nowUs: number, tokens: number, endUs: number): number
  ringOpened(): number
  spendHold(
    descriptor: number,
    low: number,
    high: number,
    nowUs: number,
    tokens: number,
    rest: number,
    endUs: number,
    ring: number,
    how: number,
  ): number
  renewHold(low: number, high: number, nowUs: number, tokens: number, fromUs: number, toUs: number, ring: number): number
  heldTokens(): number
  givenPermit(): number
  givenUntilUs(): number
  changePermit(low: number, high: number, nowUs: number, renew: boolean, given: number, untilUs: number, tokens: number): number
  saveKey(low: number, high: number, nowUs: number, takesOut: number): number
  loadKey(low: number, high: number, nowUs: number): number
  whyUnanswered(): number
  detailOfUnanswered(): number
  forgotten(): number
  readonly LATE: WebAssembly.Global
  readonly EVICTED: WebAssembly.Global
  readonly HELD: WebAssembly.Global
  grant(steps: number): void
  left(): number
  startOver(): void
  asyncify_start_unwind(stack: number): void
  asyncify_stop_unwind(): void
  asyncify_start_rewind(stack: number): void
  asyncify_stop_rewind(): void
}

/** The halves of a key's hash. */
export interface ExploredKey {
  readonly low: number
  readonly high: number
}
