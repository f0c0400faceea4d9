/**
 * The JSON schemas of requests and answers. Requests are validated against them, answers are in the tests, and
 * `GET /openapi.json` contains them. Schemas with an `$id` are components there.
 */
import { count, inputs, object, text } from './inputs.js'
import { network } from './network.js'
import { peer } from './peer.js'

/** A reference to one of `components`. */
export function ref(id: (typeof components)[number]['$id']): { readonly $ref: string } {
  return { $ref: `${id}#` }
}

export const components = [
  {
    $id: 'Failure',
    description: 'An error: a message of one line, a code for programs, and often a remedy.',
    ...object(
      {
        error: text,
        code: text,
        remedy: text,
        learned: {
          ...count,
          description: 'Number of the first inputs of the request that were learned before the peer stopped.'
        }
      },
      ['remedy', 'learned']
    )
  },
  ...peer,
  ...inputs,
  ...network
] as const

/** Error answers of all routes. */
export const failures = {
  '4xx': { description: 'The request was rejected.', ...ref('Failure') },
  '5xx': { description: 'The peer cannot answer.', ...ref('Failure') }
}
