import type { CallRate, Throttled } from 'sluicegate'
import { type Awaitable, PolicyError } from '../../../engine/engine.js'
import { type Client, type Command, CommandFault, NOT_AN_INTEGER, wrongArguments } from '../command.js'
import type { ReplyWriter } from '../reply-writer.js'

/** `CL.THROTTLE key max_burst count period [quantity]`, as in redis-cell; keys may have any bytes. */
export const throttle: Command = {
  name: 'cl.throttle',
  arity: -5,
  keyAt: 1,
  flags: ['write', 'fast'],
  summary: 'Takes from a key at a rate that comes with the call.',
  run(client, args, reply) {
    const { count } = args
    if (count > 6) throw wrongArguments('cl.throttle')
    const maxBurst = args.integer(2)
    const perPeriod = args.integer(3)
    const periodS = args.integer(4)
    const quantity = count === 6 ? args.integer(5) : 1
    if (Number.isNaN(maxBurst + perPeriod + periodS + quantity)) throw new CommandFault(NOT_AN_INTEGER)
    const answer = decided(client, args.latin1(1), { maxBurst, count: perPeriod, periodS }, quantity)
    if (answer instanceof Promise) return answer.then((throttled) => (later) => write(later, throttled))
    write(reply, answer)
  },
}

/** What the arguments are called in the protocol. */
const ARGUMENTS: Readonly<Record<string, string>> = { maxBurst: 'max_burst', periodS: 'period' }

function decided({ context: { engine } }: Client, key: string, rate: CallRate, quantity: number): Awaitable<Throttled> {
  try {
    const answer = engine.callRates.throttle(key, rate, quantity)
    return answer instanceof Promise ? answer.catch(refused) : answer
  } catch (error) {
    return refused(error)
  }
}

/** @throws the error in the words of the protocol. */
function refused(error: unknown): never {
  if (error instanceof PolicyError) throw new CommandFault(`ERR ${ARGUMENTS[error.option] ?? error.option} ${error.mend}`)
  throw error
}

function write(reply: ReplyWriter, { limited, limit, remaining, retryAfterS, resetAfterS }: Throttled): void {
  reply.decision(!limited, limit, remaining, retryAfterS, resetAfterS)
}
