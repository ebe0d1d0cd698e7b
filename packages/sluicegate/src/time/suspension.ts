/** How often it is looked whether the machine slept, in time that it was awake. */
const LOOK_MS = 250
/** A shorter sleep is not told from a clock that is being corrected. */
const LEAST_SLEEP_MS = 1_000

/** The clocks of a machine, in milliseconds. */
export interface MachineTime {
  /** Stands still while the machine sleeps. */
  awakeMs(): number
  /** May be set. */
  wallMs(): number
  /** Goes on while the machine sleeps, and cannot be set; undefined where the runtime has none. It may be coarse, and costs a call of the system. */
  sinceBootMs(): number | undefined
}

/** The clocks of this machine. */
export function machineTime(): MachineTime {
  // Looking the global up at each reading would cost 5 ns.
  const { performance } = globalThis
  return { awakeMs: () => performance.now(), wallMs: () => Date.now(), sinceBootMs: uptimeMs }
}

function uptimeMs(): number | undefined {
  try {
    const { getBuiltinModule } = globalThis.process as unknown as { getBuiltinModule?: (name: string) => { uptime(): number } | undefined }
    const seconds = getBuiltinModule?.('os')?.uptime()
    return typeof seconds === 'number' ? seconds * 1000 : undefined
  } catch {
    return undefined
  }
}

/**
 * How long the machine has slept. Where the wall clock has run ahead, and the time since the start of the machine too, it slept; a wall clock
 * that was set is not believed. Whole seconds, so that threads agree.
 */
export class Suspension {
  private readonly time: MachineTime
  private wallAheadMs = Number.NaN
  private bootAheadMs: number | undefined

  constructor(time: MachineTime) {
    this.time = time
  }

  /** The reading of {@link MachineTime.awakeMs} from which on to look again. */
  nextMs = Number.NEGATIVE_INFINITY

  /** Milliseconds for which it slept since the last look. */
  look(awakeMs: number): number {
    this.nextMs = awakeMs + LOOK_MS
    const wallAheadMs = this.time.wallMs() - awakeMs
    const jumpMs = wallAheadMs - this.wallAheadMs
    this.wallAheadMs = wallAheadMs
    if (jumpMs < LEAST_SLEEP_MS) return 0
    const bootMs = this.time.sinceBootMs()
    const bootAheadMs = bootMs === undefined ? undefined : bootMs - awakeMs
    const sleptMs = Math.floor(((bootAheadMs ?? Number.NaN) - (this.bootAheadMs ?? Number.NaN)) / 1000) * 1000
    this.bootAheadMs = bootAheadMs
    return sleptMs >= LEAST_SLEEP_MS ? sleptMs : 0
  }
}
