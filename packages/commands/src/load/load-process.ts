import type { OpenEngine } from './load-plan.js'
import { type LoadMessage, type LoadOrder, type PreparedShare, prepareShare, reportSecond } from './run-load.js'

/** Makes this process one of those of a load, started with a channel to the one that adds up. */
export function serveLoadProcess(openEngine: OpenEngine): void {
  const send = (message: LoadMessage): void => {
    process.send?.(message)
  }
  // Ctrl-C reaches all processes of a terminal; the first one says what to do.
  process.on('SIGINT', () => undefined)
  process.on('disconnect', () => process.exit(1))
  let share: PreparedShare | undefined

  const prepare = async ({ plan, index }: Extract<LoadOrder, { kind: 'plan' }>): Promise<void> => {
    try {
      share = await prepareShare(plan, openEngine, index, (second, interval) => send(reportSecond(second, interval)))
      send({ kind: 'ready' })
    } catch (error) {
      send({ kind: 'failed', message: (error as Error).message })
    }
  }
  const run = async (): Promise<void> => {
    if (share === undefined) return
    await share.run.run()
    send({ kind: 'done', seconds: share.run.seconds, errors: [...(await share.close())] })
  }
  process.on('message', (order: LoadOrder) => {
    if (order.kind === 'plan') void prepare(order)
    else if (order.kind === 'stop') share?.run.stop()
    else void run()
  })
}
