/** A header's name and value. Headers are data: whoever has the response sets them. */
export type HeaderPair = readonly [name: string, value: string]
