import type { Turn } from './turn.js'

/** The turn, once the hook is done as well; what it rejects with is what the request fails with. */
export async function heardOut(told: Promise<unknown>, turn: Promise<Turn>, fail: (error: unknown) => void): Promise<Turn> {
  told.then(undefined, fail)
  const leave = await turn
  try {
    await told
  } catch (error) {
    leave.unused()
    throw error
  }
  return leave
}
