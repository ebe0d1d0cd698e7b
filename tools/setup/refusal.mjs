/** An error that the user can correct: shown without a stack. */
export class Refusal extends Error {}
