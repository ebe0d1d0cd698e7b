import { type Awaitable, DEFAULT_HOLD_MS, type HoldFault, MAX_HOLD_MS, MAX_HOLD_WAIT_MS, type WorkAsked } from '../../../engine/engine.js'
import { type Command, CommandFault, NOT_AN_INTEGER, type Reply, SYNTAX_ERROR, wrongArguments } from '../command.js'
import type { CommandReader } from '../command-reader.js'
import type { ReplyWriter } from '../reply-writer.js'
import { keyOf, policyOf, shownMs, withoutPermits, writeDecision, writeSoft } from './policies.js'

/** `SG.OPEN policy key [EXPECT tokens] [MOST tokens] [TTL ms] [OVER cut|wait|finish] [ID text] [PRIORITY name]` */
export const open: Command = {
  ...ofHolds('sg.open', -3, 'Begins work whose cost is known only afterwards.'),
  keyAt: 2,
  run(client, args, reply) {
    const served = withoutPermits(policyOf(client, args.text(1)))
    const key = keyOf(args)
    const { asked, priority } = askedIn(args)
    const floor = served.floorOf(key, { name: priority, cap: () => client.user?.priority })
    return answered(client.context.engine.holds.open(served, key, asked, floor), reply, (writer, { decision, id, held, affordable }) => {
      writeDecision(writer, decision, 4)
      writeAll(writer, held, affordable)
      if (id === undefined) writer.null()
      else writer.bulk(id)
      writeSoft(writer, decision)
    })
  },
}

/** `SG.ADD hold cost [CALL number]` */
export const add: Command = {
  ...ofHolds('sg.add', -3, 'Spends a piece of open work.'),
  run({ context: { engine } }, args, reply) {
    if (args.count !== 3 && args.count !== 5) throw wrongArguments('sg.add')
    const answer = engine.holds.add(args.text(1), integer(args, 2), callIn(args, 3))
    return answered(answer, reply, (writer, { isAdded, decision, used, held, over, affordable }) => {
      writer.array(6)
      const retryMs = isAdded ? -1 : (decision?.retryAfterMs ?? Number.POSITIVE_INFINITY)
      writeAll(writer, isAdded ? 0 : 1, used, held, over, affordable, shownMs(retryMs))
    })
  },
}

/** `SG.CLOSE hold [cost] [CALL number]` */
export const close: Command = {
  ...ofHolds('sg.close', -2, 'Ends open work with its true cost.'),
  run({ context: { engine } }, args, reply) {
    if (args.count > 5) throw wrongArguments('sg.close')
    const hasCost = args.count % 2 === 1
    const answer = engine.holds.close(args.text(1), hasCost ? integer(args, 2) : undefined, callIn(args, hasCost ? 3 : 2))
    return answered(answer, reply, (writer, { decision, used, over }) => {
      writer.array(4)
      writeAll(writer, used, over, decision.remaining)
      writeSoft(writer, decision)
    })
  },
}

function ofHolds(name: string, arity: number, summary: string): Omit<Command, 'run'> {
  return { name, arity, keyAt: 0, flags: ['write', 'fast'], summary }
}

function askedIn(args: CommandReader): { readonly asked: WorkAsked; readonly priority: string | undefined } {
  if (args.count % 2 === 0) throw new CommandFault(SYNTAX_ERROR)
  let expect: WorkAsked['expect'] = 'learned'
  let most = Number.POSITIVE_INFINITY
  let ttlMs = DEFAULT_HOLD_MS
  let over: WorkAsked['over'] = 'cut'
  let id: string | undefined
  let priority: string | undefined
  for (let at = 3; at < args.count; at += 2) {
    const option = args.latin1(at).toUpperCase()
    if (option === 'EXPECT') expect = integer(args, at + 1)
    else if (option === 'MOST') most = integer(args, at + 1)
    else if (option === 'TTL') ttlMs = integer(args, at + 1)
    else if (option === 'OVER') over = overOf(args.latin1(at + 1))
    else if (option === 'ID') id = args.text(at + 1)
    else if (option === 'PRIORITY') priority = args.text(at + 1)
    else throw new CommandFault(SYNTAX_ERROR)
  }
  const mostMs = over === 'wait' ? MAX_HOLD_WAIT_MS : MAX_HOLD_MS
  if (ttlMs < 10 || ttlMs > mostMs) throw new CommandFault(`ERR TTL must be 10 to ${mostMs}, in milliseconds`)
  return { asked: { expect, most, ttlMs, over, id }, priority }
}

function overOf(word: string): WorkAsked['over'] {
  const over = (['cut', 'wait', 'finish'] as const).find((known) => known === word.toLowerCase())
  if (over === undefined) throw new CommandFault('ERR OVER must be cut, wait or finish')
  return over
}

/** The number behind `CALL`, which are the last two arguments. */
function callIn(args: CommandReader, at: number): number | undefined {
  if (args.count <= at) return undefined
  if (args.latin1(at).toUpperCase() !== 'CALL') throw new CommandFault(SYNTAX_ERROR)
  const call = integer(args, at + 1)
  if (call < 1) throw new CommandFault('ERR CALL must be at least 1')
  return call
}

function integer(args: CommandReader, at: number): number {
  const value = args.integer(at)
  if (Number.isNaN(value)) throw new CommandFault(NOT_AN_INTEGER)
  return value
}

const FAULTS = {
  unknown:
    'NOHOLD there is no such hold: it never was, it ended more than its TTL ago, it is forgotten, as many others have ended or opened since, its policy was removed, or the service was restarted',
  closed: 'HOLDCLOSED this hold was closed',
  passed: 'CALLPASSED a later call of this hold was answered before: number each call one higher, and open other work with another ID',
} as const

function known<Answer extends object>(answer: Answer | HoldFault): Answer {
  if ('fault' in answer) throw new CommandFault(FAULTS[answer.fault])
  return answer
}

/** @throws {CommandFault} where there is no answer. */
function answered<Answer extends object>(
  answer: Awaitable<Answer | HoldFault>,
  reply: ReplyWriter,
  write: (reply: ReplyWriter, answer: Answer) => void,
): Promise<Reply> | undefined {
  if (answer instanceof Promise) {
    return answer.then((made) => {
      const found = known(made)
      return (later) => write(later, found)
    })
  }
  write(reply, known(answer))
  return undefined
}

function writeAll(reply: ReplyWriter, ...values: readonly number[]): void {
  for (const value of values) reply.integer(value)
}
