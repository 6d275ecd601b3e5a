// Asking the server, and what people are told when it does not answer.

import {ask} from './session.js';

// Nobody answers. Errors of the page's own code are TypeErrors, too, and are not this one.
export class Unreachable extends TypeError {}

// The answer and its JSON; null where there is none.
export async function send(path, options) {
  let response;
  let text;
  try {
    response = await ask(path, options);
    text = await response.text();
  } catch (error) {
    throw error instanceof TypeError ? new Unreachable(error.message) : error;
  }
  const body = parsed(text, response);
  if (!response.ok) {
    const error = new Error(body?.error ? body.error.message : response.statusText);
    error.status = response.status;
    throw error;
  }
  return {response, body};
}

function parsed(text, response) {
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The answer is not the server's, but perhaps a proxy's: ${response.status} ${response.statusText}`);
  }
}

export async function getJson(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  return (await send(query ? path + '?' + query : path)).body;
}

// PUT and DELETE.
export async function changeJson(method, path, parameters, body) {
  await send(path + '?' + new URLSearchParams(parameters), {
    method, ...(body ? {headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)} : {}),
  });
}

export function explain(error) {
  if (error instanceof Unreachable) {
    return 'The server does not answer: the step has ended, or the tunnel is gone. ' +
           'Finished steps are shown by "sonde serve".';
  }
  if (error.status === 401) {
    return 'You are not logged in here. Open the address that "sonde url STEP" prints, or that "sonde serve" ' +
           'printed; then load this page again.';
  }
  return error instanceof TypeError ? `The page has a fault: ${error.message}` : error.message;
}
