import { Random } from '../random.js'
import { type Stepwise, type Stretch, TO_THE_END } from './search.js'

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
