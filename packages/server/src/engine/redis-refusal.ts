import { ErrorReply } from '@redis/client'
import { StoreRefusal } from './store-watch.js'

/** What to do about an answer of a server that begins so. */
const MENDS: readonly (readonly [answer: RegExp, mend: string])[] = [
  [
    /^READONLY /,
    'its address leads to a replica: give that of the primary; where it is a name, it is looked up again until it leads there',
  ],
  [/^OOM /, 'its memory is full: raise maxmemory, or remove keys of others'],
  [/^MISCONF /, 'it cannot save to its disk: see its log'],
  [/^NOREPLICAS /, 'it has fewer replicas than min-replicas-to-write asks for'],
  [/^MASTERDOWN /, 'it is a replica without its primary: give the address of the primary'],
  [/^CLUSTERDOWN /, 'its cluster does not serve all slots: see CLUSTER INFO'],
  [/cluster support disabled/, 'it is a single server: give url instead of nodes'],
  [/^MOVED /, 'it is part of a cluster: give nodes instead of url'],
  [/^(?:WRONGPASS|NOAUTH) |invalid password|AUTH failed/, 'give its user and password in the address'],
  [
    /^NOPERM .*(?:key|access)|can't access at least one of the keys/i,
    "allow this user the keys that begin with the prefix: ACL SETUSER NAME '~PREFIX:*'",
  ],
  [/^NOPERM |can't run this command|unknown command/, 'allow this user the commands that docs/redis.md lists under "Access control"'],
]
/** What passes by itself. */
const PASSING = /^(?:LOADING|BUSY|TRYAGAIN) |max number of clients/
const LONGEST = 300

/** The answer of a server as a refusal, with what to do; other errors, such as a lost connection, as they are. */
export function redisRefusal(error: unknown): Error {
  if (!(error instanceof ErrorReply)) return error instanceof Error ? error : new Error(String(error))
  const { message } = error
  const [, mend] = MENDS.find(([answer]) => answer.test(withoutPlace(message))) ?? []
  return new StoreRefusal(message.slice(0, LONGEST), { mend, isPassing: PASSING.test(message), cause: error })
}

/** Redis before 7 says within its own words what a command of a script was answered. */
function withoutPlace(message: string): string {
  return /: -([A-Z]{3,} .*)/.exec(message)?.[1] ?? message
}
