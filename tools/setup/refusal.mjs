/** A reason not to go on that the user can act on: shown without a stack. */
export class Refusal extends Error {}
