/** Checks answers against the server's OpenAPI description. */
import assert from 'node:assert/strict'
import fastify from 'fastify'

interface Operation {
  readonly responses: Record<string, { readonly content?: Record<string, { readonly schema?: object }> }>
}

export interface OpenApiDescription {
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly schemas: Record<string, object> }
}

export class OpenApiContract {
  readonly #check: (schema: object, value: unknown) => string
  /** Operations that have been checked, as `get /status 200`. */
  readonly seen = new Set<string>()

  private constructor(
    readonly description: OpenApiDescription,
    check: (schema: object, value: unknown) => string
  ) {
    this.#check = check
  }

  static async of(url: string): Promise<OpenApiContract> {
    const description = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDescription
    const app = fastify({ ajv: { customOptions: { strict: false, removeAdditional: false, coerceTypes: false } } })
    let check = (_schema: object, _value: unknown) => ''
    app.get('/', request => {
      check = (schema, value) => {
        const validate = request.compileValidationSchema({ ...schema, components: description.components })
        return validate(value) ? '' : JSON.stringify(validate.errors)
      }
      return {}
    })
    await app.inject('/')
    const contract = new OpenApiContract(description, (schema, value) => check(schema, value))
    await app.close()
    return contract
  }

  /** Checks an answer against the description. @returns its body */
  async check(method: 'get' | 'post', path: string, answer: Response): Promise<unknown> {
    const operation = this.description.paths[path]?.[method]
    assert.ok(operation, `${method} ${path} is not described`)
    const { status } = answer
    const responses = operation.responses
    const response = responses[status] ?? responses[`${Math.floor(status / 100)}XX`]
    assert.ok(response, `${method} ${path}: the answer ${status} is not described`)
    this.seen.add(`${method} ${path} ${status}`)
    const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
    if (response.content === undefined) return answer.text()
    const { schema } = response.content[type] ?? {}
    assert.ok(schema, `${method} ${path} ${status}: the type ${type} is not described`)
    if (type !== 'application/json') return answer.arrayBuffer()
    const value = await answer.json()
    assert.equal(this.#check(schema, value), '', `${method} ${path} ${status}: ${JSON.stringify(value)}`)
    return value
  }
}
