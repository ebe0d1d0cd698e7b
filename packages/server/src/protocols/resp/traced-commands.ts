import type { CallTracing } from '../call-tracing.js'
import type { Command, Reply } from './command.js'

/** Commands, of which those on a key are followed. */
export function tracedCommands(commands: readonly Command[], tracing: CallTracing | undefined): readonly Command[] {
  if (tracing === undefined) return commands
  return commands.map((command) => (command.keyAt === 0 ? command : tracedCommand(command, tracing)))
}

function tracedCommand(command: Command, tracing: CallTracing): Command {
  const name = command.name.toUpperCase()
  const call = { name, attributes: { 'sluicegate.command': name }, headers: undefined }
  return {
    ...command,
    run: (client, args, reply) =>
      tracing.run<Reply | undefined>(call, () => command.run(client, args, reply)) as Promise<Reply> | undefined,
  }
}
