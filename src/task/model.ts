/** The model of a task: which kind it is, and what follows from that. */
import {
  type CustomName,
  customLoss,
  isClassifier,
  isCustomName,
  type ModelName,
  modelNames,
  OptionError
} from '../learner/index.js'
import { loadModel, type ModelSpec, PRESETS, parseModel } from '../nn/spec/model-spec.js'
import type { TaskOptions } from './options.js'

/** A model option, resolved. */
export type TaskModel =
  | { readonly kind: 'linear'; readonly name: ModelName }
  | { readonly kind: 'custom'; readonly name: CustomName }
  | { readonly kind: 'network'; readonly layers: ModelSpec }

/** @throws OptionError for an unknown name, ModelError for a network that cannot be described */
export function modelOf({ model }: TaskOptions): TaskModel | undefined {
  if (model === undefined) return undefined
  if (typeof model === 'object') return { kind: 'network', layers: parseModel(model, 'model') }
  if (isCustomName(model)) {
    customLoss(model)
    return { kind: 'custom', name: model }
  }
  if ((modelNames as readonly string[]).includes(model)) return { kind: 'linear', name: model as ModelName }
  if (!(PRESETS as readonly string[]).includes(model) && !/\.(ya?ml|json)$/i.test(model)) {
    const names = [...modelNames, ...PRESETS].join(', ')
    throw new OptionError(`unknown model '${model}'; expected one of ${names}, custom:NAME, or a YAML or JSON file`)
  }
  return { kind: 'network', layers: loadModel(model) }
}

/** Networks have biases instead of the constant feature. */
export function hasConstant({ constant = true }: TaskOptions, model: TaskModel | undefined): boolean {
  return constant && model?.kind !== 'network'
}

/** Whether the model predicts a number instead of a class. */
export function predictsNumber({ target }: TaskOptions, model: TaskModel | undefined): boolean {
  switch (model?.kind) {
    case 'linear':
      return !isClassifier(model.name)
    case 'custom':
      return !customLoss(model.name).classifies
    case 'network':
      return target === 'number'
    case undefined:
      return target === 'number'
    default:
      return model satisfies never
  }
}
