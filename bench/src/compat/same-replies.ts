import assert from 'node:assert/strict'
import type { Reply, RivalSite } from './rival-express.js'

/** What says when a request came, and not what was decided about it. */
const OF_THE_MOMENT = new Set(['date', 'connection', 'keep-alive'])
const RESETS = /(?<=^|\breset=|\bt=)\d+/
const RESET_FIELDS = ['x-ratelimit-reset', 'ratelimit-reset', 'ratelimit', 'retry-after']
/** Two sites are not asked at the same moment, and seconds are rounded. */
const MOST_SECONDS_APART = 2

/** How a site is asked, beside the path. */
interface AskedHow {
  readonly headers?: Readonly<Record<string, string>>
  readonly mostSecondsApart?: number
}

/** Asks both sites the same in turn: statuses, bodies and headers have to be the same. Times may be apart by what passes meanwhile. */
export async function assertSameReplies(
  theirs: RivalSite,
  ours: RivalSite,
  paths: readonly string[],
  { headers = {}, mostSecondsApart = MOST_SECONDS_APART }: AskedHow = {},
): Promise<readonly number[]> {
  const statuses = []
  for (const [i, path] of paths.entries()) {
    const [expected, actual] = [await theirs.ask(path, headers), await ours.ask(path, headers)]
    assert.deepEqual(timeless(actual), timeless(expected), `reply ${i + 1}, to ${path}`)
    for (const field of RESET_FIELDS) {
      const apart = Math.abs(secondsIn(actual, field) - secondsIn(expected, field))
      assert.ok(apart <= mostSecondsApart, `${field}: ${actual.headers[field]} where theirs is ${expected.headers[field]}`)
    }
    statuses.push(actual.status)
  }
  return statuses
}

function secondsIn({ headers }: Reply, field: string): number {
  return Number(RESETS.exec(headers[field] ?? '')?.[0] ?? 0)
}

function timeless({ status, headers, body }: Reply): Reply {
  const fields = Object.entries(headers).filter(([name]) => !OF_THE_MOMENT.has(name))
  const same = fields.map(([name, value]) => [name, RESET_FIELDS.includes(name) ? plain(value).replace(RESETS, 's') : plain(value)])
  return { status, headers: Object.fromEntries(same), body }
}

/** A structured field without optional white space, and without the hash of the key, which theirs tells to all. */
function plain(value: string): string {
  return value.replaceAll(/; (?=\w+=)/g, ';').replaceAll(/;pk=:[^:]*:/g, '')
}
