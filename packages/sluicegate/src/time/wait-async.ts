type WaitAsync = <Words extends Int32Array | BigInt64Array>(
  words: Words,
  index: number,
  value: Words[number],
) => { readonly async: boolean; readonly value: unknown }

/** `Atomics.waitAsync`: Node 20 has it, the types of its time do not yet, and not every browser does. */
export const waitAsync = (Atomics as { waitAsync?: WaitAsync }).waitAsync
