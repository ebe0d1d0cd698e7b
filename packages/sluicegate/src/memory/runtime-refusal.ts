import { PolicyError } from '../errors.js'

/**
 * What the core needs of a runtime, which some refuse: WebAssembly from bytes, as in edge functions, or shared memory, as in pages that are not
 * isolated. A limiter elsewhere works there.
 *
 * @throws {PolicyError} `RUNTIME_UNSUPPORTED`; out of memory is another matter, and thrown on.
 */
export function neededOfRuntime<Value>(what: string, make: () => Value): Value {
  try {
    return make()
  } catch (error) {
    if (error instanceof RangeError) throw error
    const mend = 'is refused by this runtime: give a limiter that asks elsewhere, see node_modules/sluicegate/docs/frameworks.md#elsewhere'
    throw new PolicyError('RUNTIME_UNSUPPORTED', what, error instanceof Error ? error.name : String(error), mend)
  }
}
