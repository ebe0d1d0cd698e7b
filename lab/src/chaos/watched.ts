import type { RedisProcess } from 'sluicegate-testkit'
import type { Subject } from './recorded.js'

/** A server that does not answer by then is reported as silent. */
const PATIENCE_MS = 2000
const WORTH_KNOWING =
  /^(role|master_host|master_port|master_link_status|connected_slaves|slave\d+|cluster_state|cluster_slots_ok|cluster_known_nodes|master0):/

/** What a subject waits for, and its last answer. */
export type Watched = Pick<Subject, 'name' | 'load'> & { readonly limiter: Subject['limiter'] }

/** In what state servers and subjects are, to be read by people. */
export async function stateOf(servers: readonly RedisProcess[], subjects: readonly Watched[]): Promise<string> {
  return [...(await Promise.all(servers.map(serverState))), stateOfSubjects(subjects)].join('\n')
}

export function stateOfSubjects(subjects: readonly Watched[]): string {
  return subjects.map(subjectState).join('\n')
}

async function serverState(server: RedisProcess): Promise<string> {
  const asked = [
    server.ask('INFO', 'replication'),
    server.ask('INFO', 'sentinel'),
    server.ask('CLUSTER', 'INFO'),
    server.ask('CLUSTER', 'NODES'),
  ]
  // A single server, and a sentinel, know nothing of clusters.
  const answers = await Promise.all(asked.map((answer) => inTime(answer.catch(() => ''))))
  const lines = answers.join('\n').split(/\r?\n/)
  const known = lines.filter((line) => WORTH_KNOWING.test(line) || /^[0-9a-f]{40} /.test(line))
  return [`server ${server.port}: ${known.length === 0 ? 'no answer' : ''}`, ...known.map((line) => `  ${line}`)].join('\n')
}

function subjectState({ name, load, limiter }: Watched): string {
  const nowMs = performance.now()
  const ago = (ms: number): string => `${Math.round(nowMs - ms)} ms ago`
  const last = load.takes.at(-1)
  const open = load.open.map(({ key, askedMs }) => `${key} asked ${ago(askedMs)}`)
  return [
    `${name}: ${load.takes.length} takes, ${load.errors.length} errors`,
    `  last answer: ${last === undefined ? 'none' : `${last.key}, ${last.decision.source}, ${ago(last.answeredMs)}`}`,
    `  waiting: ${open.join('; ') || 'none'}`,
    `  errors: ${load.errors.slice(-3).map(String).join('; ') || 'none'}`,
    `  counters: ${JSON.stringify(limiter.stats())}`,
  ].join('\n')
}

function inTime(answer: Promise<string>): Promise<string> {
  return Promise.race([answer, new Promise<string>((resolve) => setTimeout(() => resolve(''), PATIENCE_MS))])
}

/** No wait takes longer, on a machine that has other things to do as well. */
const LONGEST_MS = 60_000

/** Waits for what a name says. */
export type Watchdog = <Value>(what: string, awaited: Promise<Value>) => Promise<Value>

/** Waits that end, each of them: with what was waited for, else with a failure that says what state everything was in. */
export function watchdog(state: () => Promise<string>, longestMs = LONGEST_MS): Watchdog {
  return async (what, awaited) => {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not so after ${longestMs} ms`)), longestMs)
    })
    try {
      return await Promise.race([awaited, late])
    } catch (error) {
      throw new Error(`${what}: ${error instanceof Error ? error.message : error}\n${await state()}`, { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }
}
