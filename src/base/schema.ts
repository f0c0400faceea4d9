/** Parts of schemas from which types, checks, JSON schemas and reference pages follow. */
import * as z from 'zod'

/** The values of a schema, which nobody changes. */
export type ValueOf<Schema extends z.ZodType> = Frozen<z.infer<Schema>>
type Frozen<T> = T extends object ? { readonly [Key in keyof T]: Frozen<T[Key]> } : T

export const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
export const share = z.number().min(0).max(1)
/** Peer id. */
export const peerId = z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{1,64}$/)
