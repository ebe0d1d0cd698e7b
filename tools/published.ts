/** The published packages and the folder of each. */
export const FOLDER_OF = { sluicegate: 'packages/sluicegate', 'sluicegate-server': 'packages/server' } as const
export type Published = keyof typeof FOLDER_OF
