/** Adam's step of a vector. */
import { define, get, type Local, set, vector } from '../../../base/assembler.js'
import { quads, spread } from './loops.js'

const { add, sub, mul, div, sqrt, load, store } = vector

/**
 * (parameters, gradient, mean, square, count, β₁, 1 − β₁, β₂, 1 − β₂, 1/divisor, step/(1 − β₁^t), 1/(1 − β₂^t), ε), of which the
 * first four are addresses.
 */
export const adamStep = define(
  'adamStep',
  ['i32', 'i32', 'i32', 'i32', 'i32', 'f32', 'f32', 'f32', 'f32', 'f32', 'f32', 'f32', 'f32'],
  (locals, [parameters, gradient, mean, square, count, ...numbers]) => {
    const [setVectors, vectors] = spread(locals, numbers)
    const [beta1, rest1, beta2, rest2, perCount, rate, correction, epsilon] = vectors.map(get)
    const [g, m, v] = [locals.vector(), locals.vector(), locals.vector()]
    const at = (pointer: Local) => load(get(pointer))
    return [
      setVectors,
      quads(
        locals,
        count,
        [parameters, gradient, mean, square],
        [
          set(g, mul(at(gradient), perCount)),
          set(m, add(mul(at(mean), beta1), mul(get(g), rest1))),
          set(v, add(mul(at(square), beta2), mul(mul(get(g), rest2), get(g)))),
          store(get(mean), get(m)),
          store(get(square), get(v)),
          store(
            get(parameters),
            sub(at(parameters), div(mul(get(m), rate), add(sqrt(mul(get(v), correction)), epsilon)))
          )
        ]
      )
    ]
  }
)
