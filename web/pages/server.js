// Asking the server, and what people are told when it does not answer.

export async function getJson(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  const response = await fetch('.' + (query ? path + '?' + query : path));
  const body = await response.json();
  if (!response.ok) {
    const error = new Error(body.error ? body.error.message : response.statusText);
    error.status = response.status;
    throw error;
  }
  return body;
}

// PUT and DELETE.
export async function changeJson(method, path, parameters, body) {
  const response = await fetch('.' + path + '?' + new URLSearchParams(parameters), {
    method, ...(body ? {headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)} : {}),
  });
  if (response.ok) return;
  const answer = await response.json();
  throw new Error(answer.error ? answer.error.message : response.statusText);
}

export function explain(error) {
  if (error instanceof TypeError) {
    return 'The server does not answer: the step has ended, or the tunnel is gone. ' +
           'Finished steps are shown by "sonde serve".';
  }
  return error.message;
}
