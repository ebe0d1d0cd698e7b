import { type StoreWarning, warnOfRefusal } from '../warn-once.js'
import type { CommandRunner } from './command-runner.js'

/** What a server answers until somebody mends it. */
interface Refusal {
  readonly code: StoreWarning
  readonly answer: RegExp
  readonly what: string
  readonly mend: string
  /** Clients of a cluster get it while slots move, and follow it. */
  readonly isOfSingle?: true
}

/** The code of an error reply: at its begin, within that of a script, or as valkey-glide writes it. */
function coded(codes: string): RegExp {
  return new RegExp(`(?:^|: -|: - )(?:${codes})(?:Error)?:? `, 'i')
}

const REFUSALS: readonly Refusal[] = [
  {
    code: 'SLUICEGATE_REPLICA',
    answer: coded('READONLY'),
    what: 'it is a replica, which takes no writes',
    mend: 'give the address of the primary; where that is a name which moves at a failover, the client has to connect again, see docs/redis.md, "A name that moves"',
  },
  ...(
    [
      [coded('OOM'), 'its memory is full', 'raise maxmemory, or remove keys of others'],
      [coded('MISCONF'), 'it cannot save to its disk', 'see its log'],
      [coded('NOREPLICAS'), 'it has fewer replicas than min-replicas-to-write asks for', 'start them, or lower that'],
      [coded('NOAUTH|WRONGPASS|AuthenticationFailed'), 'it wants another user or password', 'give them to the client'],
      [
        /(?:^|: -|: - )NOPERM .*(?:a key|keys)|can't access at least one of the keys/i,
        'the user may not use these keys',
        "allow the keys that begin with the prefix: ACL SETUSER NAME '~sluicegate:*', in a region '~sluicegate@*' too",
      ],
      [
        /(?:^|: -|: - )NOPERM|can't run this command|no permissions to run|unknown command/i,
        'the user may not run a command that limits need',
        'allow those that docs/redis.md lists under "Access control"',
      ],
    ] as const
  ).map(([answer, what, mend]) => ({ code: 'SLUICEGATE_STORE_REFUSES' as const, answer, what, mend })),
  {
    code: 'SLUICEGATE_STORE_REFUSES',
    answer: coded('MOVED'),
    what: 'it is part of a cluster',
    mend: 'make a client of the cluster, such as createCluster()',
    isOfSingle: true,
  },
]

/** What a server answers that refuses calls until somebody mends it; undefined for what passes by itself. */
export function refusalOf({ isCluster }: Pick<CommandRunner, 'isCluster'>, message: string): Refusal | undefined {
  return REFUSALS.find(({ answer, isOfSingle }) => answer.test(message) && !(isOfSingle && isCluster))
}

/** Warns of it. */
export function warnOfAnswer(runner: CommandRunner, error: Error): void {
  const { code, what, mend } = refusalOf(runner, error.message) ?? {}
  if (code !== undefined) warnOfRefusal(code, `a server refuses calls of ${runner.client}, ${what}: ${mend}`, `${what}`, error)
}
