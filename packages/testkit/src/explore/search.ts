import { Random } from '../random.js'

/** Runs to its end, which is nearer than this. */
export const TO_THE_END = 1 << 18

/** Something that can be run a few steps at a time. */
export interface Stepwise {
  /** @returns how many of at most `steps` there were; fewer when it came to its end. `stamp` is the position in the schedule. */
  run(steps: number, stamp: number): number
  readonly isDone: boolean
}

/** How far a search goes. */
export interface SearchBounds {
  /** Switches away from a thread that could have gone on. */
  readonly preemptions: number
  /** Threads that are stopped for good. */
  readonly deaths: number
  /** Schedules after which it gives up. */
  readonly most: number
}

/** A stretch of a schedule: a thread and its number of atomic operations, after which it may be stopped for good. */
export interface Stretch {
  readonly thread: number
  readonly steps: number
  readonly dies: boolean
}

const MOST_STRETCHES = 64

/**
 * Every schedule of some threads within bounds, each once, depth first. A schedule is a sequence of stretches; each is run from
 * the start, which is cheap, because nothing happens between switches.
 *
 * Reference for bounding preemptions: M. Musuvathi, S. Qadeer, "Iterative context bounding for systematic testing of
 * multithreaded programs", 2007.
 */
export class Search {
  schedules = 0
  private readonly threads: readonly Stepwise[]
  private readonly bounds: SearchBounds
  private readonly visit: () => boolean
  private readonly thread = new Int32Array(MOST_STRETCHES)
  private readonly limit = new Int32Array(MOST_STRETCHES)
  /** Steps each stretch really took, in the schedule run last. */
  private readonly steps = new Int32Array(MOST_STRETCHES)
  private readonly dies = new Uint8Array(MOST_STRETCHES)
  private stretches = 0
  private over = false

  /**
   * @param visit runs the schedule through {@link Search.runAll}, judges it, and says whether to go on.
   */
  constructor(threads: readonly Stepwise[], bounds: SearchBounds, visit: () => boolean) {
    this.threads = threads
    this.bounds = bounds
    this.visit = visit
  }

  /** True when all was searched. */
  run(): boolean {
    this.switchTo(-1, 0, -1, this.bounds.preemptions, this.bounds.deaths)
    return !this.over
  }

  /** The schedule at hand, from a memory that stands at the start. */
  runAll(): void {
    for (let i = 0; i < this.stretches; i++) {
      this.steps[i] = (this.threads[this.thread[i] as number] as Stepwise).run(this.limit[i] as number, i)
    }
  }

  /** The schedule run last. */
  get stretchesRun(): Stretch[] {
    return Array.from({ length: this.stretches }, (_, i) => ({
      thread: this.thread[i] as number,
      steps: this.steps[i] as number,
      dies: this.dies[i] === 1,
    }))
  }

  /** Whether the schedule at hand stops a thread for good. */
  get kills(): boolean {
    for (let i = 0; i < this.stretches; i++) if (this.dies[i] === 1) return true
    return false
  }

  /** Everything that begins with the first `depth` stretches and then `current`. `gone`: bits of the threads that are done or dead. */
  private go(depth: number, current: number, gone: number, preemptions: number, deaths: number): void {
    this.thread[depth] = current
    this.dies[depth] = 0
    this.limit[depth] = TO_THE_END
    const left = gone | (1 << current)
    this.next(depth, left, preemptions, deaths)
    // The first of these schedules has run the thread to its end: its number of operations is the number of places to leave it.
    const places = this.steps[depth] as number
    for (let steps = 1; steps < places && !this.over; steps++) {
      if (preemptions > 0) {
        this.leave(depth, current, steps, 0)
        this.switchTo(depth, gone, current, preemptions - 1, deaths)
      }
      if (deaths > 0 && !this.over) {
        this.leave(depth, current, steps, 1)
        this.next(depth, left, preemptions, deaths - 1)
      }
    }
  }

  private leave(depth: number, thread: number, steps: number, dies: number): void {
    this.thread[depth] = thread
    this.limit[depth] = steps
    this.dies[depth] = dies
  }

  /** Goes on with each thread that is left; with none, this is a whole schedule. */
  private next(depth: number, gone: number, preemptions: number, deaths: number): void {
    if (gone === (1 << this.threads.length) - 1) {
      this.stretches = depth + 1
      this.schedules++
      if (!this.visit() || this.schedules >= this.bounds.most) this.over = true
      return
    }
    this.switchTo(depth, gone, -1, preemptions, deaths)
  }

  private switchTo(depth: number, gone: number, except: number, preemptions: number, deaths: number): void {
    for (let thread = 0; thread < this.threads.length && !this.over; thread++) {
      if (thread !== except && (gone & (1 << thread)) === 0) this.go(depth + 1, thread, gone, preemptions, deaths)
    }
  }
}

/** How many schedules are drawn, and from which seed. */
export interface WalkBounds {
  readonly walks: number
  readonly seed: number
}

const LONGEST_STRETCH = 12
/** One stretch in this many is run to its end. */
const TO_THE_END_ONE_IN = 8
/** One schedule in this many stops a thread for good. */
const DEATH_ONE_IN = 3

/**
 * Schedules drawn at random, with any number of preemptions: what lies beyond the bounds of a {@link Search}. One may be drawn
 * twice.
 */
export class Walk {
  schedules = 0
  stretchesRun: Stretch[] = []
  private readonly threads: readonly Stepwise[]
  private readonly bounds: WalkBounds
  private readonly visit: () => boolean
  private readonly random: Random

  /** @param visit runs the schedule through {@link Walk.runAll}, judges it, and says whether to go on. */
  constructor(threads: readonly Stepwise[], bounds: WalkBounds, visit: () => boolean) {
    this.threads = threads
    this.bounds = bounds
    this.visit = visit
    this.random = new Random(bounds.seed)
  }

  /** True when none of the schedules ended the walk. */
  run(): boolean {
    while (this.schedules < this.bounds.walks) {
      this.schedules++
      if (!this.visit()) return false
    }
    return true
  }

  /** A schedule, made up as it is run. */
  runAll(): void {
    const { random } = this
    this.stretchesRun = []
    const left = this.threads.map((_, thread) => thread)
    let deaths = random.integer(1, DEATH_ONE_IN) === 1 ? 1 : 0
    while (left.length > 0) {
      const at = random.integer(0, left.length - 1)
      const thread = left[at] as number
      const limit = random.integer(1, TO_THE_END_ONE_IN) === 1 ? TO_THE_END : random.integer(1, LONGEST_STRETCH)
      const runner = this.threads[thread] as Stepwise
      const steps = runner.run(limit, this.stretchesRun.length)
      const dies = !runner.isDone && deaths > 0 && random.integer(1, this.threads.length) === 1
      if (dies) deaths--
      if (dies || runner.isDone) left.splice(at, 1)
      this.stretchesRun.push({ thread, steps, dies })
    }
  }

  get kills(): boolean {
    return this.stretchesRun.some(({ dies }) => dies)
  }
}
