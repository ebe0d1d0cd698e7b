import { createHash } from 'node:crypto'
import type { CommandRunner } from '../../../sluicegate/dist/redis/command-runner.js'
import { CALL_RATE_SCRIPT, NODES_SCRIPT, REGION_SCRIPTS, SCRIPTS } from '../../../sluicegate/dist/redis/scripts.gen.js'
import type { Clock } from '../../../sluicegate/dist/time/clock-interface.js'

/** What a script reads its time from, and how long beyond its state a key is kept. */
const TIME = "redis.call('TIME')"
const SLACK = 'local SLACK_MS=1\n'
/** Whatever else reads the arguments finds them as they were made. */
export const GIVEN = '{ 0, table.remove(ARGV) }'
/** For ever, as the server's clock, by which keys end, is not the one that is given. */
const ENDLESS = 'local SLACK_MS=100000000000000\n'

/** A script as it is, but for its time, which is its last argument. */
export function withGivenTime(source: string): string {
  for (const line of [TIME, SLACK]) {
    if (source.split(line).length !== 2) throw new Error(`a script has to say ${JSON.stringify(line)} once`)
  }
  return source.replace(TIME, GIVEN).replace(SLACK, ENDLESS)
}

const SOURCES: ReadonlyMap<string, string> = new Map(
  [...Object.values(SCRIPTS), CALL_RATE_SCRIPT, NODES_SCRIPT, ...Object.values(REGION_SCRIPTS)].map(({ sha1, source }) => [
    sha1,
    withGivenTime(source),
  ]),
)

const SHA1S: ReadonlyMap<string, string> = new Map(
  [...SOURCES].map(([sha1, source]) => [sha1, createHash('sha1').update(source).digest('hex')]),
)

/** The scripts of the store at times that are given: every call runs at `nowUs`, or at the time of a clock, as it is when the call is made. */
export class GivenTime implements CommandRunner {
  nowUs = 0
  /** Calls without an answer so far. */
  underway = 0
  private readonly clock: Clock | undefined
  readonly client: string
  readonly isCluster: boolean
  private readonly runner: CommandRunner
  private readonly plant: ((source: string) => string) | undefined

  /** @param plant a fault in a script. */
  constructor(runner: CommandRunner, clock?: Clock, plant?: (source: string) => string) {
    this.runner = runner
    this.plant = plant
    this.clock = clock
    this.client = runner.client
    this.isCluster = runner.isCluster
  }

  serverOf(slot: number): string | undefined {
    return this.runner.serverOf(slot)
  }

  async send(key: string, command: readonly string[]): Promise<unknown> {
    const [verb = '', script = '', ...rest] = command
    const given = verb === 'EVALSHA' ? SHA1S.get(script) : verb === 'EVAL' ? withGivenTime(script) : undefined
    if (given === undefined) throw new Error(`${verb} knows no time`)
    const nowUs = this.clock === undefined ? this.nowUs : Math.round(this.clock.nowMs() * 1000)
    const planted = verb === 'EVALSHA' ? this.plant?.(SOURCES.get(script) as string) : undefined
    const run = planted === undefined ? [verb, given] : ['EVAL', planted]
    this.underway++
    try {
      return await this.runner.send(key, [...run, ...rest, String(nowUs)])
    } finally {
      this.underway--
    }
  }

  sendToAll(command: readonly string[]): Promise<readonly unknown[]> {
    return this.runner.sendToAll(command)
  }
}
