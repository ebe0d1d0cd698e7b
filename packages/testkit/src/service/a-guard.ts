import { Guard } from 'sluicegate-server/dist/protocols/guard.js'

/** The door of a protocol, for a test in which no fault is expected: one ends the test. */
export function aGuard(protocol: Guard['protocol'] = 'http'): Guard {
  return new Guard(protocol, {
    error(fault: { readonly err: Error }) {
      setImmediate(() => {
        throw fault.err
      })
    },
  } as ConstructorParameters<typeof Guard>[1])
}
