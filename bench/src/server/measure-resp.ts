import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { RedisProcess } from 'sluicegate-testkit'
import { bucketScript, SERVER_NOW } from '../redis/bucket.js'
import { redisBenchmark } from './generators.js'
import { ServiceProcess } from './service-process.js'

const run = promisify(execFile)

const PIPELINES = [1, 16, 64] as const
const CONNECTIONS = 50
/** Keys that the calls choose from. */
const KEYS = 100_000
const KEY = 'key:__rand_int__'
/** 16 at once, then 30 a minute: most calls are denied. */
const [MAX_BURST, COUNT, PERIOD_S] = ['15', '30', '60']
const US_PER_TOKEN = '2000000'
const US_OF_BURST = '32000000'
const WARM_UP_REQUESTS = 50_000

/** Requests a second of each round, at one depth of pipelining. */
export interface RespFigure {
  readonly pipelined: number
  readonly throttle: readonly number[]
  readonly set: readonly number[]
  readonly script: readonly number[]
}

export interface RespEffort {
  readonly rounds: number
  /** Of each run, at the deepest pipelining; a quarter of them without. */
  readonly requests: number
}

/** redis-benchmark against the service and redis-server, one after the other in each round, on 100,000 keys. */
export async function measureResp({ rounds, requests }: RespEffort): Promise<RespFigure[]> {
  const redis = await RedisProcess.start()
  const service = await ServiceProcess.start()
  try {
    const sha = (await run('redis-cli', ['-p', `${redis.port}`, 'SCRIPT', 'LOAD', bucketScript(SERVER_NOW)])).stdout.trim()
    const contenders: readonly (readonly [name: 'throttle' | 'set' | 'script', port: number, command: readonly string[]])[] = [
      ['throttle', service.respPort, ['CL.THROTTLE', KEY, MAX_BURST, COUNT, PERIOD_S]],
      ['set', redis.port, ['SET', KEY, '1']],
      ['script', redis.port, ['EVALSHA', sha, '1', KEY, US_PER_TOKEN, US_OF_BURST]],
    ]
    const figures: RespFigure[] = []
    for (const [, port, command] of contenders) await perSecond(port, command, 16, WARM_UP_REQUESTS)
    for (const pipelined of PIPELINES) {
      const of = { throttle: [] as number[], set: [] as number[], script: [] as number[] }
      for (let round = 0; round < rounds; round++) {
        for (const [name, port, command] of contenders) {
          of[name].push(await perSecond(port, command, pipelined, pipelined === 1 ? Math.ceil(requests / 4) : requests))
        }
      }
      figures.push({ pipelined, ...of })
    }
    return figures
  } finally {
    await service.stop()
    await redis.stop()
  }
}

async function perSecond(port: number, command: readonly string[], pipelined: number, requests: number): Promise<number> {
  return (await redisBenchmark(port, command, { connections: CONNECTIONS, pipelined, requests, keys: KEYS })).perSecond
}
