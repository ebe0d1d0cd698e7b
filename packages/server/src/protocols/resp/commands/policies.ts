import { isUtf8 } from 'node:buffer'
import { didYouMean } from 'sluicegate-config/spelling.js'
import type { AskedPriority, Awaitable, Decision, ServedPolicy } from '../../../engine/engine.js'
import type { Scope } from '../access.js'
import { type Client, type Command, CommandFault, NOT_AN_INTEGER, type Reply, SYNTAX_ERROR, wrongArguments } from '../command.js'
import type { CommandReader } from '../command-reader.js'
import type { ReplyWriter } from '../reply-writer.js'

const REPLACEMENT = '\ufffd'
/** Before the bytes of a key that is no UTF-8, which no text begins with. */
const BINARY_KEY = '\udcff'

type Verb = (policy: ServedPolicy, key: string, tokens: number, priority: AskedPriority) => Awaitable<Decision>

/** `SG.TAKE policy key [cost] [PRIORITY name]` */
export const take: Command = verb(
  'sg.take',
  [3, 6],
  'write',
  'Takes tokens of a key under a named policy.',
  (policy, key, cost, priority) => withoutPermits(policy).take(key, cost, priority),
)
/** `SG.PEEK policy key [cost] [PRIORITY name]` */
export const peek: Command = verb(
  'sg.peek',
  [3, 6],
  'readonly',
  'Returns what SG.TAKE would; changes nothing.',
  (policy, key, cost, priority) => policy.peek(key, cost, priority),
)
/** `SG.REFUND policy key [tokens]` */
export const refund: Command = verb(
  'sg.refund',
  [3, 4],
  'write',
  'Gives tokens back to a key.',
  (policy, key, tokens) => policy.refund(key, tokens),
  'admin',
)
/** `SG.RESET policy key` */
export const reset: Command = verb(
  'sg.reset',
  [3, 3],
  'write',
  'Makes a key full and lifts its block.',
  (policy, key) => policy.reset(key),
  'admin',
)

function verb(
  name: string,
  [least, most]: readonly [number, number],
  flag: string,
  summary: string,
  call: Verb,
  scope: Scope = 'decide',
): Command {
  return {
    name,
    arity: least === most ? least : -least,
    keyAt: 2,
    flags: [flag, 'fast'],
    scope,
    summary,
    run(client, args, reply) {
      if (args.count > most) throw wrongArguments(name)
      const named = args.count >= 5 ? priorityIn(args) : undefined
      const tokens = args.count % 2 === 0 ? args.integer(3) : 1
      if (Number.isNaN(tokens)) throw new CommandFault(NOT_AN_INTEGER)
      const priority = { name: named, cap: () => client.user?.priority }
      const policy = policyOf(client, args.text(1))
      return answered(policy, call(policy, keyOf(args), tokens, priority), reply)
    },
  }
}

/** The name behind `PRIORITY`, which are the last two arguments. */
function priorityIn(args: CommandReader): string {
  if (args.latin1(args.count - 2).toUpperCase() !== 'PRIORITY') throw new CommandFault(SYNTAX_ERROR)
  return args.text(args.count - 1)
}

/** @throws {CommandFault} */
export function policyOf({ context: { engine } }: Client, name: string): ServedPolicy {
  const policy = engine.policy(name)
  if (policy !== undefined) return policy
  const names = Array.from(engine.policies, (known) => known.name)
  throw new CommandFault(`NOPOLICY there is no policy ${JSON.stringify(name.slice(0, 64))}${didYouMean(name, names)}`)
}

/** A permit could not be released here, and would be held for its whole time. */
export function withoutPermits(policy: ServedPolicy): ServedPolicy {
  if (!Number.isFinite(policy.permitMs)) return policy
  throw new CommandFault(`NOPERMITS policy ${JSON.stringify(policy.name)} gives permits, which have to be released: use HTTP for it`)
}

/** The key as text, the same as in other protocols. Bytes that are no UTF-8 make a key that only they can spell. */
export function keyOf(args: CommandReader): string {
  const key = args.text(2)
  if (!key.includes(REPLACEMENT) || isUtf8(args.copy(2))) return key
  return BINARY_KEY + args.latin1(2)
}

function answered(policy: ServedPolicy, decision: Awaitable<Decision>, reply: ReplyWriter): Promise<Reply> | undefined {
  if (decision instanceof Promise) return decision.then((made) => (later) => write(later, policy, made))
  write(reply, policy, decision)
  return undefined
}

/** With times in milliseconds. A policy with soft limits has one item more. */
function write(reply: ReplyWriter, { config }: ServedPolicy, decision: Decision): void {
  const hasSoft = config.soft !== undefined
  writeDecision(reply, decision, hasSoft ? 1 : 0)
  if (hasSoft) writeSoft(reply, decision)
}

/** The five integers of a decision, and how many items follow. */
export function writeDecision(reply: ReplyWriter, decision: Decision, more: number): void {
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs } = decision
  reply.decision(allowed, limit, remaining, shownMs(allowed ? -1 : retryAfterMs), shownMs(resetAfterMs), more)
}

/** -1: nothing to wait for, or never. */
export function shownMs(ms: number): number {
  return Number.isFinite(ms) ? ms : -1
}

/** The names of the policies of which the key has reached a soft limit. */
export function writeSoft(reply: ReplyWriter, { soft = [] }: Decision): void {
  reply.array(soft.length)
  for (const name of soft) reply.bulk(name)
}
