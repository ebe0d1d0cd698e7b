import type { Throttled } from 'sluicegate'
import { type Command, CommandFault, NOT_AN_INTEGER, wrongArguments } from '../command.js'
import type { ReplyWriter } from '../reply-writer.js'

/** `CL.THROTTLE key max_burst count period [quantity]`, as in redis-cell; keys may have any bytes. */
export const throttle: Command = {
  name: 'cl.throttle',
  arity: -5,
  keyAt: 1,
  flags: ['write', 'fast'],
  summary: 'Takes from a key at a rate that comes with the call.',
  run(session, args, reply) {
    const { count } = args
    if (count > 6) throw wrongArguments('cl.throttle')
    const maxBurst = args.integer(2)
    const perPeriod = args.integer(3)
    const periodS = args.integer(4)
    const quantity = count === 6 ? args.integer(5) : 1
    // NaN is not equal to itself; the sum is NaN if one of them is.
    const sum = maxBurst + perPeriod + periodS + quantity
    if (sum !== sum) throw new CommandFault(NOT_AN_INTEGER)
    const answer = session.context.engine.callRates.throttle(args.latin1(1), { maxBurst, count: perPeriod, periodS }, quantity)
    if (answer instanceof Promise) return answer.then((throttled) => (later) => write(later, throttled))
    write(reply, answer)
  },
}

function write(reply: ReplyWriter, { limited, limit, remaining, retryAfterS, resetAfterS }: Throttled): void {
  reply.array(5)
  reply.integer(limited ? 1 : 0)
  reply.integer(limit)
  reply.integer(remaining)
  reply.integer(retryAfterS)
  reply.integer(resetAfterS)
}
