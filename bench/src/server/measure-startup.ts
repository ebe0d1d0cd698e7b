import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { ServiceProcess } from './service-process.js'

export interface StartupEffort {
  readonly rounds: number
}

/** Milliseconds of each round, one after the other. */
export interface StartupFigure {
  /** From its start until the service accepts connections of all protocols. */
  readonly serviceMs: readonly number[]
  /** From its start until `node -e 0` has ended. */
  readonly nodeMs: readonly number[]
}

/** How long `sluicegate serve` takes to listen, beside a Node.js that does nothing. */
export async function measureStartup({ rounds }: StartupEffort): Promise<StartupFigure[]> {
  const [serviceMs, nodeMs]: [number[], number[]] = [[], []]
  // The first round fills the caches of files.
  for (let round = 0; round <= rounds; round++) {
    const [node, service] = [await nodeTook(), await serviceTook()]
    if (round === 0) continue
    nodeMs.push(node)
    serviceMs.push(service)
  }
  return [{ serviceMs, nodeMs }]
}

async function nodeTook(): Promise<number> {
  const startMs = performance.now()
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit')
  return performance.now() - startMs
}

async function serviceTook(): Promise<number> {
  const service = await ServiceProcess.start()
  const { startupMs } = service
  await service.stop()
  return startupMs
}
