/** Between two of these numbers of policies others have their turn. */
const POLICIES_OF_STEP = 8

/** The steps of writing a message with many policies as JSON, of which the steps of `making` make the message. */
export function* eventData<Message extends { readonly policies: readonly unknown[] }>(
  making: Iterator<unknown, Message>,
): Generator<unknown, string> {
  let made = making.next()
  while (!made.done) {
    yield
    made = making.next()
  }
  const { policies, ...others } = made.value
  const texts: string[] = []
  for (const [i, policy] of policies.entries()) {
    texts.push(JSON.stringify(policy))
    if ((i + 1) % POLICIES_OF_STEP === 0) yield
  }
  const rest = JSON.stringify(others).slice(1)
  return `{"policies":[${texts.join(',')}]${rest === '}' ? '' : ','}${rest}`
}
