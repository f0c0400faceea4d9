/** Types of options at run time and for the compiler, from one table. Programs in JavaScript have no others. */
import * as z from 'zod'
import { CodedError, nearest } from './errors.js'

/** Invalid options of a model, rule, average or trainer. */
export class OptionError extends CodedError {
  static override readonly code = 'ERR_OPTION'
}

/** The type of each option, by its name. */
type OptionTypes = Readonly<Record<string, z.ZodType>>
/** Options that may all be absent, from the table of their types. The comments of the table describe them. */
export type OptionsOf<Types extends OptionTypes> = { readonly [Key in keyof Types]?: z.infer<Types[Key]> }

/** Values that the test accepts. @param expected what messages call them */
function values<Value>(expected: string, test: (value: unknown) => boolean): z.ZodType<Value> {
  return z.custom<Value>(test, { error: expected })
}

/**
 * Types of options at run time, because programs in JavaScript have no others. The functions that programs call check their options
 * once with `checkOptions`; ranges, and what goes together, are checked where the options are used.
 */
export const number = values<number>('a number', value => typeof value === 'number')
export const text = values<string>('a string', isText)
export const flag = values<boolean>('true or false', value => typeof value === 'boolean')
export const callback = values<(...given: never[]) => unknown>('a function', value => typeof value === 'function')
export const bytes = values<Uint8Array>('a Uint8Array', value => value instanceof Uint8Array)
export const list = values<readonly unknown[]>('an array', Array.isArray)
export const set = values<ReadonlySet<string>>('a Set', value => value instanceof Set)
export const texts = values<readonly string[]>(
  'an array of strings',
  value => Array.isArray(value) && value.every(isText)
)
export const numbers = values<readonly number[]>(
  'an array of numbers',
  value => Array.isArray(value) && value.every(item => typeof item === 'number')
)

/** @param example text of a valid value */
export function object<Value = object>(example: string): z.ZodType<Value> {
  return values(`an object such as ${example}`, isObject)
}

/** An object with a name: the spec of a rule or an average. */
export function named<Value>(name: string): z.ZodType<Value> {
  return values(`an object such as { name: '${name}' }`, value => isObject(value) && isText(value.name))
}

export function choice<const Choice extends string>(...choices: readonly Choice[]): z.ZodType<Choice> {
  const quoted = choices.map(each => `'${each}'`)
  return values(quoted.join(' or '), value => (choices as readonly unknown[]).includes(value))
}

export function matching<Value extends string>(pattern: RegExp, expected: string): z.ZodType<Value> {
  return values(expected, value => isText(value) && pattern.test(value))
}

/** The same values, of a type that the test does not decide. */
export function typed<Value>(type: z.ZodType): z.ZodType<Value> {
  return type as z.ZodType<Value>
}

/** A string, or options. */
export function textOr<Value>(type: z.ZodType<Value>): z.ZodType<string | Value> {
  return z.custom<string | Value>().superRefine((value, context) => {
    if (isText(value)) return
    const issues = type.safeParse(value, { reportInput: true }).error?.issues ?? []
    for (const { path, message, ...issue } of issues) {
      const expected = path.length === 0 && !isObject(value) ? 'a string or an object' : message
      context.addIssue({ ...issue, path, message: expected } as Parameters<typeof context.addIssue>[0])
    }
  })
}

export function either<Types extends readonly z.ZodType[]>(...types: Types): z.ZodType<z.infer<Types[number]>> {
  const expected = types.map(type => type.safeParse(Symbol()).error?.issues[0].message)
  return values(expected.join(' or '), value => types.some(type => type.safeParse(value).success))
}

/** An object of options, none other than these. @param required those without a default */
export function options<Options>(
  types: { readonly [Key in keyof Required<Options>]: z.ZodType },
  required: readonly (keyof Options & string)[] = []
): z.ZodType<Options> {
  const shape = Object.entries<z.ZodType>(types).map(([key, type]) => [
    key,
    (required as readonly string[]).includes(key) ? type : type.optional()
  ])
  return typed<Options>(
    z.strictObject(Object.fromEntries(shape), {
      error: ({ code, keys = [] }) => (code === 'unrecognized_keys' ? unknown(keys as string[], types) : 'an object')
    })
  )
}

/**
 * @param what the messages name, such as `the options of train`
 * @throws OptionError naming the first option that is unknown, missing or of another type
 */
export function checkOptions(what: string, type: z.ZodType, value: unknown): void {
  const [issue] = type.safeParse(value, { reportInput: true }).error?.issues ?? []
  if (issue === undefined) return
  const { path, code, message, input } = issue
  const name = path.length === 0 ? what : `${what}: ${path.join('.')}`
  if (code === 'unrecognized_keys') throw new OptionError(`${name}: ${message}`)
  throw new OptionError(`${name} must be ${message}, not ${given(input, message)}`)
}

function unknown([key]: readonly string[], types: object): string {
  const meant = nearest(key, Object.keys(types))
  return `unknown option ${key}; ${meant === undefined ? 'remove it' : `did you mean ${meant}?`}`
}

/** What was given instead. Only values of choices are repeated: others may be secret. */
function given(value: unknown, expected: string): string {
  if (isText(value) && /(^|or )'/.test(expected)) return `'${value}'`
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
