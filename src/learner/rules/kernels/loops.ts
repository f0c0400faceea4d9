/** Building blocks of the kernels: loops over float32 vectors whose last four numbers may lie beyond the end. */
import { advance, type Code, get, i32, type Local, type Locals, repeat, set, vector } from '../../../base/assembler.js'

/** Runs `body` for each four of `count` numbers, rounded up, and advances the pointers. */
export function quads(locals: Locals, count: Local, pointers: readonly Local[], body: Code): Code {
  const remaining = locals.integer()
  return [
    set(remaining, i32.shiftRight(i32.add(get(count), i32.constant(3)), i32.constant(2))),
    repeat(remaining, [body, pointers.map(pointer => advance(pointer, 16))])
  ]
}

/** Vectors with a number in all lanes, and the code that sets them. */
export function spread(locals: Locals, numbers: readonly Local[]): readonly [code: Code, vectors: readonly Local[]] {
  const vectors = numbers.map(() => locals.vector())
  return [vectors.map((into, i) => set(into, vector.same(get(numbers[i])))), vectors]
}
