import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { COMPILED, ServiceProcess, SLUICEGATE } from './service-process.js'

/** Milliseconds of each round, one after the other. */
export type StartupFigure = Awaited<ReturnType<typeof measureStartup>>[number]

/** How long `sluicegate serve` takes to listen, as it is published and as it is compiled, beside a Node.js that does nothing. */
export async function measureStartup({ rounds }: { readonly rounds: number }) {
  const figure = {
    /** From its start until the service accepts connections of all protocols. */
    serviceMs: [] as number[],
    /** The same of the program as tsc compiles it, one file a module. */
    compiledMs: [] as number[],
    /** From its start until `node -e 0` has ended. */
    nodeMs: [] as number[],
  }
  // The first round fills the caches of files.
  for (let round = 0; round <= rounds; round++) {
    const [node, service, compiled] = [await nodeTook(), await serviceTook(SLUICEGATE), await serviceTook(COMPILED)]
    if (round === 0) continue
    figure.nodeMs.push(node)
    figure.serviceMs.push(service)
    figure.compiledMs.push(compiled)
  }
  return [figure]
}

async function nodeTook(): Promise<number> {
  const startMs = performance.now()
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit')
  return performance.now() - startMs
}

async function serviceTook(program: string): Promise<number> {
  const service = await ServiceProcess.start([], program)
  const { startupMs } = service
  await service.stop()
  return startupMs
}
